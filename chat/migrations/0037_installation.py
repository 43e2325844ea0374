"""Which files belong to the database."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("chat", "0036_subsessions")]

    operations = [
        migrations.CreateModel(
            name="Installation",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("files_mark", models.CharField(max_length=32)),
            ],
        ),
    ]
